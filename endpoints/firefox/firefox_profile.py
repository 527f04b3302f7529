"""Firefox's settings: one page over one protocol, from a server of ours, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path

from page_job import FIRST_VISIT, HOST, LATER_VISIT, UPGRADE, Job, Refusal

Setting = bool | int | str

# Without the first, or the second, it would ask Mozilla for settings, and tell it of crashes.
ENVIRONMENT = {"MOZ_REMOTE_SETTINGS_DEVTOOLS": "1", "MOZ_CRASHREPORTER_DISABLE": "1"}
BODY_BYTES = 1 << 30  # that Firefox keeps of replies until they are asked for

# Background activity of a browser: updates, lists, metrics, guesses.
_QUIET: dict[str, Setting] = {
    "app.normandy.enabled": False,
    "app.update.disabledForTesting": True,
    "browser.chrome.guess_favicon": False,
    "browser.aboutHomeSnippets.updateUrl": "",
    "browser.newtabpage.activity-stream.feeds.section.topstories": False,
    "browser.newtabpage.activity-stream.feeds.topsites": False,
    "browser.newtabpage.enabled": False,
    "browser.ping-centre.telemetry": False,
    "browser.region.network.url": "",
    "browser.safebrowsing.downloads.enabled": False,
    "browser.safebrowsing.malware.enabled": False,
    "browser.safebrowsing.phishing.enabled": False,
    "browser.search.update": False,
    "browser.shell.checkDefaultBrowser": False,
    "browser.startup.homepage": "about:blank",
    "browser.startup.page": 0,
    "browser.topsites.contile.enabled": False,
    "datareporting.healthreport.uploadEnabled": False,
    "datareporting.policy.dataSubmissionEnabled": False,
    "dom.push.connection.enabled": False,
    "extensions.getAddons.cache.enabled": False,
    "extensions.systemAddon.update.enabled": False,
    "extensions.update.enabled": False,
    "geo.provider.network.url": "",
    "media.gmp-manager.updateEnabled": False,
    "messaging-system.rsexperimentloader.enabled": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "network.dns.disablePrefetch": True,
    # Whatever it may want elsewhere ends at a port of this host where nobody listens.
    "network.proxy.http": "127.0.0.1",
    "network.proxy.http_port": 1,
    "network.proxy.no_proxies_on": HOST,
    "network.proxy.ssl": "127.0.0.1",
    "network.proxy.ssl_port": 1,
    "network.proxy.type": 1,
    "network.http.speculative-parallel-limit": 0,
    "network.prefetch-next": False,
    "network.predictor.enabled": False,
    "network.trr.mode": 5,  # no DNS over HTTPS
    "security.OCSP.enabled": 0,
    "services.settings.server": "data:,",
    "toolkit.telemetry.enabled": False,
    "toolkit.telemetry.server": "",
    "toolkit.telemetry.unified": False,
}


def write(job: Job, profile: Path) -> None:
    """Make a profile to load the page of `job`. Refusal of a visit that it does not make."""
    if job.alpn == "h3" and job.testcase == LATER_VISIT:
        raise Refusal(f"{job.testcase}: over h3 Firefox takes up tickets with early data alone")
    lines = (
        f"user_pref({json.dumps(name)}, {json.dumps(value)});\n" for name, value in _settings(job).items()
    )
    (profile / "user.js").write_text("".join(lines))


def _settings(job: Job) -> dict[str, Setting]:
    wanted: dict[str, Setting] = {
        **_QUIET,
        # The server's name is known without DNS.
        "network.dns.forceResolve": job.address,
        "network.http.http2.enabled": job.alpn in ("h2", UPGRADE),
        "network.http.http3.enable": job.alpn in ("h3", UPGRADE),
        # Of certificates of an authority of our own.
        "network.http.http3.disable_when_third_party_roots_found": False,
        # Times as they are, not rounded against those who spy.
        "privacy.reduceTimerPrecision": False,
        "remote.network.maxTotalDataSize": BODY_BYTES,
    }
    if job.alpn == "h3":
        wanted |= {
            "network.http.http3.alt-svc-mapping-for-testing": f"{HOST};h3=:{job.port}",
            "network.http.http3.enable_0rtt": job.testcase != FIRST_VISIT,
            # No connection of TCP beside that of QUIC where the first answer takes long.
            "network.http.http3.parallel_fallback_conn_limit": 0,
            "network.http.http3.backup_timer_delay": 0,
        }
    return wanted
