"""The commands. The only room that turns settings into backends; heavy libraries load when a command runs."""
