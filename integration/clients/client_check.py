"""Asks by way of prometheus-api-client, a Python client of Prometheus.

    python client_check.py URL BEGIN
"""

import datetime
import sys

from prometheus_api_client import PrometheusConnect

url, begin = sys.argv[1], int(sys.argv[2])
end = begin + 3600


def at(seconds):
    return datetime.datetime.fromtimestamp(seconds, tz=datetime.timezone.utc)


def expect(what, found, wanted):
    """Ends the check where two things that must be equal are not."""
    if found != wanted:
        sys.exit(f"{what}: {found!r} instead of {wanted!r}")
    print(f"ok  prometheus-api-client: {what}")


client = PrometheusConnect(url=url, disable_ssl=True)
expect("a connection", client.check_prometheus_connection(), True)
expect("metrics", client.all_metrics(), ["heat", "hits_total"])
expect("label names", client.get_label_names(), ["__name__", "host", "room"])
expect("label values", client.get_label_values("host"), ["a", "b"])
found = client.custom_query("sum by (host) (irate(hits_total[5m]))", params={"time": end})
wanted = [{"metric": {"host": host}, "value": [end, value]} for host, value in [("a", "1"), ("b", "2")]]
expect("an instant", found, wanted)
found = client.custom_query_range("sum(hits_total)", at(end - 120), at(end), "60")
wanted = [{"metric": {}, "values": [[t, str(3 * (t - begin))] for t in range(end - 120, end + 1, 60)]}]
expect("a range", found, wanted)
found = client.get_metric_range_data(
    "heat", {"room": "kitchen"}, start_time=at(end - 60), end_time=at(end)
)
expect("samples", [len(series["values"]) for series in found], [4])
