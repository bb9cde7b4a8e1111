"""An FTP server that writes down what it is asked for."""

import contextlib
import logging
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

USER, PASSWORD = "reader", "s3cret-pass"


@dataclass
class Ftp:
    """Serves `folder`; `commands` are those that came, `break_after` ends a transfer early."""

    folder: Path
    port: int = 0
    commands: list[str] = field(default_factory=list)
    break_after: int | None = None

    def url(self, path: str, scheme: str = "ftp", password: str = PASSWORD) -> str:
        return f"{scheme}://{USER}:{password}@localhost:{self.port}/{path}"


@contextlib.contextmanager
def ftp_server(folder: Path, certificate: Path | None = None) -> Iterator[Ftp]:
    """Serve `folder/ftp`, over TLS with the key and certificate in `certificate`."""
    from pyftpdlib.authorizers import DummyAuthorizer
    from pyftpdlib.handlers import DTPHandler, FTPHandler
    from pyftpdlib.servers import ThreadedFTPServer

    logging.getLogger("pyftpdlib").setLevel(logging.CRITICAL)
    served = Ftp(folder / "ftp")
    served.folder.mkdir(parents=True)
    authorizer = DummyAuthorizer()
    authorizer.add_user(USER, PASSWORD, str(served.folder))
    authorizer.add_anonymous(str(served.folder))
    base: Any = FTPHandler
    transfer: Any = DTPHandler
    if certificate is not None:
        from pyftpdlib.handlers import TLS_DTPHandler, TLS_FTPHandler

        base, transfer = TLS_FTPHandler, TLS_DTPHandler

    class Transfer(transfer):  # type: ignore[misc]
        ac_out_buffer_size = 4096

        def initiate_send(self) -> None:
            if served.break_after is not None and self.tot_bytes_sent >= served.break_after:
                self.close()
                return
            super().initiate_send()

    class Handler(base):  # type: ignore[misc]
        dtp_handler = Transfer
        use_sendfile = False

        def pre_process_command(self, line: str, cmd: str, arg: str) -> Any:
            served.commands.append(line if cmd != "PASS" else "PASS ***")
            return super().pre_process_command(line, cmd, arg)

    Handler.authorizer = authorizer
    Handler.auth_failed_timeout = 0
    if certificate is not None:
        Handler.certfile = str(certificate)
        Handler.tls_control_required = Handler.tls_data_required = True
    server = ThreadedFTPServer(("127.0.0.1", 0), Handler)
    served.port = server.address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"handle_exit": False})
    thread.start()
    try:
        yield served
    finally:
        server.close_all()
        thread.join(60)
