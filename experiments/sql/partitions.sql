{% if table.partitioned %}
CREATE TABLE event (in_order integer, alternating integer, note text) PARTITION BY HASH (alternating);
{% else %}
CREATE TABLE event (in_order integer, alternating integer, note text);
{% endif %}
