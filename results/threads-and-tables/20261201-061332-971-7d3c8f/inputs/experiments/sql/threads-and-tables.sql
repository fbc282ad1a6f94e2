-- One of three shapes, each with a primary key.
{% if shape.columns == 3 %}
CREATE TABLE {{ table }} (
  id integer PRIMARY KEY,
  amount integer,
  price numeric(10,2)
);
{% elif shape.columns == 10 %}
CREATE TABLE {{ table }} (
  id integer PRIMARY KEY,
  customer integer,
  article integer,
  amount integer,
  price numeric(10,2),
  discount double precision,
  placed_at timestamp,
  due date,
  name varchar(40),
  note varchar(100)
);
{% else %}
CREATE TABLE {{ table }} (
  id integer PRIMARY KEY
{% for n in range(1, shape.columns) %}
{% set types = ["integer", "numeric(10,2)", "varchar(40)", "timestamp", "date", "double precision", "bigint"] %}
  , c{{ n }} {{ types[n % 7] }}
{% endfor %}
);
{% endif %}
