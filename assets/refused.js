// Panel's page says that it has no connection. Why, the server knows: only there it is seen by what name a proxy asks.
{
  const AWAY = "The server does not answer. Reload this page when it does."
  const NOT_PASSED_ON =
    "The server answers, but no connection to it can be opened. Reload this page; if that does not help, a proxy before the server does not pass on WebSockets: assets/nginx.conf of the lab shows how."
  const place = document.getElementById("loader-error")
  const said = new MutationObserver(async () => {
    said.disconnect()
    if (!window.Bokeh) return
    const answer = await fetch(location.pathname, { method: "POST", cache: "no-store" }).catch(() => null)
    place.textContent = answer?.ok ? (await answer.text()) || NOT_PASSED_ON : AWAY
    place.setAttribute("role", "alert")
    Object.assign(place.style, { maxWidth: "36em", margin: "0 1em", overflowWrap: "anywhere", color: "#b71c1c" })
  })
  if (place) said.observe(place, { childList: true })
}
