"""The live loop: lanes run in threads, and their frames go to the page as fast as it draws them."""
