CREATE TABLE payments (
  id INTEGER PRIMARY KEY, customer TEXT NOT NULL, time TEXT NOT NULL, cents INTEGER NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('open', 'paid', 'refunded', 'failed'))
);
CREATE TABLE refunds (
  id INTEGER PRIMARY KEY, payment_id INTEGER NOT NULL REFERENCES payments (id), time TEXT NOT NULL, cents INTEGER NOT NULL
);
