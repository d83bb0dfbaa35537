"""How a report looks: light, at home on paper, in the fonts that every system has."""

from typing import Final

STYLE: Final = """
:root { color-scheme: light; }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2rem 1.5rem 3rem; max-width: 62rem; background: #fff; color: #1f2328;
       font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif; }
header { display: flex; justify-content: space-between; align-items: baseline; gap: 1rem;
         border-bottom: 2px solid #1f2328; padding-bottom: .4rem; margin-bottom: 1.4rem; color: #57606a; }
header strong { color: #1f2328; font-size: 1.05rem; letter-spacing: .01em; }
h2 { font-size: 1.45rem; line-height: 1.25; margin: 0 0 .1rem; overflow-wrap: anywhere; }
h3 { font-size: 1rem; margin: 1.7rem 0 .5rem; padding-bottom: .2rem; border-bottom: 1px solid #d0d7de; }
p { margin: .4rem 0; overflow-wrap: anywhere; }
.sub { color: #57606a; margin: 0 0 1rem; }
.verdict { display: flex; gap: 1rem; align-items: center; border: 1px solid #d0d7de; border-left-width: 8px;
           border-radius: 6px; padding: .8rem 1rem; margin: 0 0 1rem; }
.verdict b { font-size: 1.25rem; white-space: nowrap; }
.verdict p { margin: 0; }
.pass { border-left-color: #1a7f37; background: #f2fbf4; } .pass b { color: #116329; }
.short { border-left-color: #bf8700; background: #fffaeb; } .short b { color: #7d4e00; }
.fail { border-left-color: #cf222e; background: #fff5f5; } .fail b { color: #a40e26; }
.none { border-left-color: #57606a; background: #f6f8fa; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1.2rem; margin: 0; }
dt { color: #57606a; } dd { margin: 0; overflow-wrap: anywhere; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; font-size: .92rem; }
th { text-align: right; font-weight: 600; color: #57606a; border-bottom: 1px solid #8c959f; }
td { text-align: right; border-bottom: 1px solid #eaeef2; }
th, td { padding: .28rem .8rem .28rem 0; vertical-align: top; }
td:not(.words) { white-space: nowrap; }
th.words, td.words { text-align: left; overflow-wrap: anywhere; }
td b { font-weight: 650; }
table + table { margin-top: .9rem; }
ul { margin: .3rem 0; padding-left: 1.2rem; }
.warning li { margin-bottom: .2rem; } .warning li::marker { content: "▲  "; color: #bf8700; }
.why { padding-left: 1.4rem; } .why li { margin-bottom: .7rem; } .why p { margin: .1rem 0; }
code { font: .9em ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; }
figure { margin: 0; } figure svg { width: 100%; height: auto; display: block; }
.run + .run, .compare + .run { margin-top: 2.6rem; border-top: 2px solid #1f2328; padding-top: 1.4rem; }
.small { color: #57606a; font-size: .87rem; }
@media print {
  @page { margin: 14mm; }
  body { padding: 0; font-size: 10.5pt; max-width: none; }
  section, .verdict, figure, tr { break-inside: avoid; }
  h3 { break-after: avoid; }
  .run + .run, .compare + .run { break-before: page; border-top: none; margin-top: 0; padding-top: 0; }
  * { -webkit-print-color-adjust: exact; print-color-adjust: exact; }
}
@media (max-width: 40rem) {
  .verdict { display: block; } table { display: block; overflow-x: auto; }
}
"""
