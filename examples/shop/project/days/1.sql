-- The rest of the first day. Each BEGIN … COMMIT is one transaction.
BEGIN;
INSERT INTO customers VALUES (4, 'Dan', 'Bergen', '2026-03-01 13:00+00');
INSERT INTO orders VALUES (4, '2026-03-01 13:05+00', 4, 'tea', 5, 'open');
COMMIT;
BEGIN;
UPDATE orders SET status = 'paid' WHERE id IN (2, 4);
COMMIT;
-- Never happened, so no dataset has it.
BEGIN;
DELETE FROM orders;
ROLLBACK;
