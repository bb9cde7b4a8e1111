"""Real servers on the loopback interface, each started by the test that needs it."""

from tests.servers.web import Server, nginx

__all__ = ["Server", "nginx"]
