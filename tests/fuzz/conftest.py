from fuzz_rooms import add_rooms

add_rooms()
