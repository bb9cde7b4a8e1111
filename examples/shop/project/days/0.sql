-- What the shop has before odfbuild reads it for the first time.
CREATE TABLE customers (
  id int PRIMARY KEY,
  name text NOT NULL,
  city text NOT NULL,
  since timestamptz NOT NULL
);
CREATE TABLE orders (
  id int PRIMARY KEY,
  ordered_at timestamptz NOT NULL,
  customer int NOT NULL REFERENCES customers,
  sku text NOT NULL,
  quantity int NOT NULL,
  status text NOT NULL
);
-- Updates and deletes then carry the old row.
ALTER TABLE customers REPLICA IDENTITY FULL;
ALTER TABLE orders REPLICA IDENTITY FULL;

INSERT INTO customers VALUES
  (1, 'Ada', 'Lisbon', '2026-01-05 09:00+00'),
  (2, 'Bob', 'Porto', '2026-01-20 12:00+00'),
  (3, 'Cleo', 'Oslo', '2026-02-11 08:30+00');
INSERT INTO orders VALUES
  (1, '2026-03-01 08:00+00', 1, 'tea', 2, 'paid'),
  (2, '2026-03-01 09:30+00', 2, 'cup', 1, 'open'),
  (3, '2026-03-01 11:00+00', 3, 'pot', 1, 'open');
