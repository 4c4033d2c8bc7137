/** How a report looks, in light and in dark. */
export const style = `
:root{color-scheme:light dark;--page:#fafaf8;--card:#fff;--ink:#1d1f21;--soft:#6a6f76;--edge:#e2e2dd;--curve:#2563b0;--good:#1a7f45;--bad:#a15c07}
@media(prefers-color-scheme:dark){:root{--page:#15171a;--card:#1e2125;--ink:#e7e8ea;--soft:#9aa1aa;--edge:#33383f;--curve:#7cb0f2;--good:#62c98b;--bad:#e0a458}}
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--ink);font:15px/1.5 system-ui,sans-serif}
header,main{max-width:1160px;margin:auto;padding:16px 20px}
h1{margin:0;font-size:26px;overflow-wrap:anywhere}h2{font-size:18px;margin:24px 0 10px}header{padding-bottom:0}main{padding-top:0}header b{color:var(--ink)}h3{font-size:15px;margin:18px 0 8px}
p{margin:4px 0;color:var(--soft)}
.state{border:1px solid var(--edge);border-radius:99px;padding:1px 10px;color:var(--ink)}.state.done{color:var(--good)}.state.failed,.state.killed{color:var(--bad)}
.charts{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,320px),1fr));gap:12px}
figure,.sample,details{margin:0;background:var(--card);border:1px solid var(--edge);border-radius:8px;padding:10px 12px}
figcaption{display:flex;justify-content:space-between;gap:8px;font-size:13px;color:var(--soft);overflow-wrap:anywhere}figcaption i{font-style:normal;background:color-mix(in srgb,var(--curve) 16%,transparent);border-radius:4px;padding:0 5px;white-space:nowrap}figcaption b{color:var(--ink);font-variant-numeric:tabular-nums}
svg{display:block;width:100%;height:auto}svg text{fill:var(--soft);font-size:10px;font-variant-numeric:tabular-nums}
.flat{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,320px),1fr));gap:2px 24px;margin:12px 0 0;font-size:13px;color:var(--soft)}.flat div{display:flex;justify-content:space-between;gap:12px;border-bottom:1px solid var(--edge);padding:3px 0}.flat dt{overflow-wrap:anywhere}.flat dd{margin:0;white-space:nowrap}.flat b{color:var(--ink);font-variant-numeric:tabular-nums}
.y{text-anchor:end;dominant-baseline:middle}.end{text-anchor:end}.grid{stroke:var(--edge)}
.curve{fill:none;stroke:var(--curve);stroke-width:1.8;stroke-linejoin:round}.band{fill:var(--curve);opacity:.16}circle{fill:var(--curve)}
details{margin-top:12px}summary{cursor:pointer}details .charts{margin-top:10px}
article{margin-bottom:16px}.samples{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,220px),1fr));gap:10px}
pre{margin:0;font:13px/1.45 ui-monospace,monospace;white-space:pre-wrap;overflow-wrap:anywhere}
.question{margin-bottom:6px;font-weight:600}.sample p{display:flex;justify-content:space-between;font-size:12px}.good{color:var(--good)}.bad{color:var(--bad)}
.sample pre{max-height:320px;overflow:auto}.sample details{border:0;padding:0;margin-top:8px;font-size:12px;color:var(--soft)}.sample details pre{font-size:11px}
table{border-collapse:collapse;margin-top:12px;width:100%}th,td{text-align:left;vertical-align:top;padding:4px 12px 4px 0;border-top:1px solid var(--edge);overflow-wrap:anywhere}th{font-weight:400;color:var(--soft);width:30%}
`;
