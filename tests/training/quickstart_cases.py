"""A small corpus for the quickstart and the gallery."""

import random


def write_corpus(path):
    """Writes 400 documents of made-up but orderly English."""
    generator = random.Random(1)
    subjects = [
        "the cat",
        "a small dog",
        "my old friend",
        "the young king",
        "her teacher",
        "this machine",
    ]
    verbs = ["sees", "follows", "finds", "carries", "paints", "remembers", "watches", "repairs"]
    objects = ["the red ball", "a heavy stone", "an open door", "the long river", "two white birds"]
    places = ["in the garden", "under the bridge", "near the village", "behind the house"]
    times = ["before the rain", "after dinner", "on a cold morning", "during the long winter"]

    def sentence():
        words = [generator.choice(part) for part in (subjects, verbs, objects, places, times)]
        return f"{' '.join(words)} and then {generator.choice(subjects)} goes home.".capitalize()

    documents = ("\n".join(sentence() for _ in range(5)) for _ in range(400))
    path.write_text("\n\n".join(documents), encoding="utf-8")
