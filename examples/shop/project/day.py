"""What happens in the shop on a day: `python day.py 2`. Day 0 is what it had before.

The variables of `env.sh` say where its servers are.
"""

from __future__ import annotations

import argparse
import hashlib
import hmac
import json
import os
import subprocess
import time
import urllib.request
from datetime import datetime
from pathlib import Path

PRICES = {
    0: {"tea": ("Green tea", 4.5), "cup": ("Cup", 7.0), "pot": ("Teapot", 24.0)},
    # The price of tea was wrong from the beginning.
    2: {"tea": ("Green tea", 4.0), "cup": ("Cup", 7.0), "pot": ("Teapot", 24.0)},
}
VISITS = {
    1: [
        ("v1", "2026-03-01T07:58:00Z", "/tea"),
        ("v2", "2026-03-01T09:12:00Z", "/cup"),
        ("v1", "2026-03-01T13:01:00Z", "/tea"),
    ],
    2: [
        ("v3", "2026-03-02T08:02:00Z", "/pot"),
        ("v2", "2026-03-02T10:40:00Z", "/tea"),
        # A phone that was offline sends its visit a day late.
        ("v4", "2026-03-01T20:30:00Z", "/pot"),
    ],
}
PAYMENTS = {
    1: [
        ("evt_1", "2026-03-01T08:00:20Z", 1, 800),
        ("evt_2", "2026-03-01T14:10:00Z", 2, 700),
        ("evt_3", "2026-03-01T14:30:00Z", 4, 2000),
    ],
    2: [
        # The service sends an event again if it did not see the answer.
        ("evt_3", "2026-03-01T14:30:00Z", 4, 2000),
        ("evt_4", "2026-03-02T08:20:00Z", 5, 2400),
        ("evt_5", "2026-03-02T09:00:00Z", 99, 1200),
    ],
}


def change_tables(day: int) -> None:
    """Run the transactions of a day in PostgreSQL."""
    quiet = ("--quiet", "--no-psqlrc", "--set=ON_ERROR_STOP=1")
    server = f"postgresql://shop@{os.environ['SHOP_SERVER']}/shop"
    done = subprocess.run(
        ["psql", *quiet, server, f"--file=days/{day}.sql"],
        env={**os.environ, "PGPASSWORD": os.environ["SHOP_PASSWORD"]},
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"The transactions of day {day} failed; did that day happen already?")


def write_prices(prices: dict[str, tuple[str, float]]) -> None:
    """Write the price list as the office does: a title, an empty line, then the table."""
    import openpyxl

    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "Prices"
    sheet.append(["Prices of 2026, in EUR"])
    sheet.append([])
    sheet.append(["sku", "name", "price", "valid_from"])
    for sku, (name, price) in prices.items():
        sheet.append([sku, name, price, datetime(2026, 3, 1).date()])
    book.create_sheet("Notes").append(["Ask Eve before you change a price."])
    book.save("prices.xlsx")


def send_visits(visits: list[tuple[str, str, str]]) -> None:
    """Send messages to the topic `visits`."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": os.environ["SHOP_BROKERS"]})
    for visitor, at, page in visits:
        producer.produce("visits", json.dumps({"event_time": at, "page": page}), visitor)
    if producer.flush(60):
        raise SystemExit("The broker did not take all visits.")


def send_payments(payments: list[tuple[str, str, int, int]]) -> None:
    """Send events of Stripe's form to the webhook, one request each."""
    for event, at, order, cents in payments:
        charge = {"amount": cents, "currency": "eur", "metadata": {"order": str(order)}}
        created = int(datetime.fromisoformat(at).timestamp())
        body = json.dumps({"id": event, "created": created, "data": {"object": charge}})
        now = int(time.time())
        secret = os.environ["SHOP_WEBHOOK_SECRET"].encode()
        seal = hmac.new(secret, f"{now}.{body}".encode(), hashlib.sha256).hexdigest()
        request = urllib.request.Request(
            os.environ["SHOP_WEBHOOK"],
            body.encode(),
            {"Stripe-Signature": f"t={now},v1={seal}", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=300) as answer:
            known = answer.headers.get("Idempotency-Replayed") == "true"
            print(f"{event}: {'known' if known else json.load(answer)['status']}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("day", type=int, choices=(0, 1, 2))
    day = parser.parse_args().day
    os.chdir(Path(__file__).parent)
    change_tables(day)
    if day in PRICES:
        write_prices(PRICES[day])
    send_visits(VISITS.get(day, []))
    send_payments(PAYMENTS.get(day, []))


if __name__ == "__main__":
    main()
