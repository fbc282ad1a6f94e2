-- The table of the case template_in_sql_file.
CREATE {{ "UNLOGGED" if storage == "unlogged" }} TABLE orders (
  id bigint PRIMARY KEY,
  note varchar({{ width }})
);
