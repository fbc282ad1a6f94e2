ALTER TABLE purchase ADD FOREIGN KEY (customer) REFERENCES customer (id);
ALTER TABLE purchase ADD FOREIGN KEY (product) REFERENCES product (id);
