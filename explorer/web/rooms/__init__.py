"""Class sessions without accounts: students join a teacher's room by its code; a closed room is deleted."""
