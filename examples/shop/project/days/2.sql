-- The second day.
BEGIN;
INSERT INTO orders VALUES (5, '2026-03-02 08:15+00', 1, 'pot', 1, 'open');
INSERT INTO orders VALUES (6, '2026-03-02 10:45+00', 2, 'tea', 3, 'open');
COMMIT;
BEGIN;
UPDATE customers SET city = 'Faro' WHERE id = 2;
UPDATE orders SET quantity = 2 WHERE id = 6;
COMMIT;
-- Cleo cancels her order, and then leaves.
BEGIN;
DELETE FROM orders WHERE id = 3;
DELETE FROM customers WHERE id = 3;
COMMIT;
