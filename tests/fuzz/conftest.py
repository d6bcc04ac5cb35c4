from fuzz_engine import add_rooms

add_rooms()
