"""An MQTT broker: mosquitto."""

import contextlib
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.servers.programs import free_port, program, running

USER, PASSWORD = "sensor", "s3cret-pass"


@dataclass(frozen=True)
class Broker:
    port: int

    def publish(
        self, topic: str, *payloads: str | bytes, qos: int = 1, retain: bool = False
    ) -> None:
        """Send messages, in order, and wait until the broker has them."""
        from paho.mqtt.client import Client
        from paho.mqtt.enums import CallbackAPIVersion

        client = Client(CallbackAPIVersion.VERSION2)
        client.username_pw_set(USER, PASSWORD)
        client.connect("127.0.0.1", self.port)
        client.loop_start()
        for payload in payloads:
            client.publish(topic, payload, qos, retain).wait_for_publish(120)
        client.disconnect()
        client.loop_stop()


@contextlib.contextmanager
def mosquitto(
    folder: Path, port: int | None = None, certificate: Path | None = None
) -> Iterator[Broker]:
    """A broker that keeps its sessions in `folder`, so that it can be started again."""
    executable = program("mosquitto")
    folder.mkdir(parents=True, exist_ok=True)
    passwords = folder / "passwords"
    if not passwords.exists():
        tool = program("mosquitto_passwd")
        subprocess.run([tool, "-c", "-b", str(passwords), USER, PASSWORD], check=True)
        passwords.chmod(0o644)
    port = port or free_port()
    config = folder / "mosquitto.conf"
    tls = f"certfile {certificate}\nkeyfile {certificate}\n" if certificate else ""
    config.write_text(
        f"user root\nlistener {port} 127.0.0.1\n{tls}allow_anonymous false\n"
        f"password_file {passwords}\npersistence true\npersistence_location {folder}/\n"
    )
    with running([executable, "-c", str(config)], port, folder / "log"):
        yield Broker(port)
