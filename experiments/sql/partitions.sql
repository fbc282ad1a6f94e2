-- Eight partitions: of half a million keys each, or by the hash of the key, which nearly always differs from row to row.
{% for n in range(8) %}
{% if layout == "partitions one after the other" %}
CREATE TABLE event_{{ n }} PARTITION OF event FOR VALUES FROM ({{ n * 500_000 }}) TO ({{ (n + 1) * 500_000 }});
{% else %}
CREATE TABLE event_{{ n }} PARTITION OF event FOR VALUES WITH (MODULUS 8, REMAINDER {{ n }});
{% endif %}
{% endfor %}
