"""A class in one room: the addresses of this computer, short links, and rooms that follow, ask and race."""
