from irc_bridge.cli.main import main

main()
