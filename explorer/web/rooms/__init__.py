"""A class without accounts: a teacher opens a room, students join by its code, and all is forgotten when it closes."""
