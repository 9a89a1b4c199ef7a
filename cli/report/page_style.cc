#include "report/page_style.h"

namespace fz::report {

// Lines differ by dashes as well as by colour, so that neither grey paper nor colour blindness
// hides which is which.
std::string_view pageStyle() {  // NOLINT(readability-function-size): one text
  return R"css(
:root{color-scheme:light dark;--bg:#fff;--fg:#16191d;--muted:#545d68;--rule:#d5dae0;--soft:#f3f5f8;
--c1:#1d5fae;--c2:#b8430a;--c3:#6b4aa8;--c4:#2c7a6b;--ok:#13692c;--ok-bg:#e3f4e7;--no:#a11b12;--no-bg:#fde8e6;--doubt:#7a4b00;--doubt-bg:#fff1d6}
@media (prefers-color-scheme:dark){:root{--bg:#101418;--fg:#e4e8ed;--muted:#a2adb9;--rule:#343d47;--soft:#1a2027;
--c1:#74b0f4;--c2:#ff9f66;--c3:#c0a5f5;--c4:#63c9b4;--ok:#7fdc98;--ok-bg:#12301c;--no:#ff9c92;--no-bg:#3b1614;--doubt:#ffc670;--doubt-bg:#362508}}
@media print{:root{color-scheme:light;--bg:#fff;--fg:#000;--muted:#444;--rule:#bbb;--soft:#f3f3f3;--c1:#1d5fae;--c2:#b8430a;
--c3:#6b4aa8;--c4:#2c7a6b;--ok:#13692c;--ok-bg:#fff;--no:#a11b12;--no-bg:#fff;--doubt:#7a4b00;--doubt-bg:#fff}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%}
body{margin:0;background:var(--bg);color:var(--fg);font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
main{max-width:1280px;margin:0 auto;padding:1.5rem clamp(.9rem,3vw,2.5rem) 3rem}
h1{font-size:clamp(1.35rem,3.4vw,1.9rem);line-height:1.2;margin:0 0 .3rem;font-weight:650}
h2{font-size:1.2rem;margin:2.6rem 0 .8rem;padding-bottom:.3rem;border-bottom:1px solid var(--rule);font-weight:650}
.name,code,.rule{overflow-wrap:anywhere}
code,pre{font-family:ui-monospace,"SFMono-Regular",Menlo,Consolas,"DejaVu Sans Mono",monospace;font-size:.9em}
pre{background:var(--soft);padding:.7rem .9rem;border-radius:6px;white-space:pre-wrap;overflow-wrap:anywhere;margin:.4rem 0}
.lead{margin:0;color:var(--muted)}
.small{font-size:.85rem;color:var(--muted);margin:.4rem 0;overflow-wrap:anywhere}
ul.small{padding-left:1.2rem}
.verdict{margin:1rem 0;padding:.6rem .9rem;border-radius:6px;border-left:5px solid;font-weight:600;overflow-wrap:anywhere}
.ok{background:var(--ok-bg);color:var(--ok);border-color:var(--ok)}
.no{background:var(--no-bg);color:var(--no);border-color:var(--no)}
.doubt{background:var(--doubt-bg);color:var(--doubt);border-color:var(--doubt)}
.note,.plain{background:var(--soft);color:var(--fg);border-color:var(--muted)}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,9.6rem),1fr));gap:.7rem;margin:1rem 0 0}
.tile{background:var(--soft);border-radius:8px;padding:.7rem .9rem;min-width:0}
.tile dt{color:var(--muted);font-size:.85rem}
.tile dd{margin:0;font-size:1.25rem;font-weight:650;font-variant-numeric:tabular-nums;overflow-wrap:anywhere}
.tile small{display:block;font-size:.8rem;font-weight:400;color:var(--muted)}
.three,.two{display:grid;gap:1.6rem 1.8rem}
.three{grid-template-columns:repeat(auto-fit,minmax(min(100%,19rem),1fr))}
.two{grid-template-columns:repeat(auto-fit,minmax(min(100%,27rem),1fr))}
.split{display:grid;gap:1.6rem 1.8rem;grid-template-columns:minmax(0,1fr)}
@media (min-width:60rem){.split{grid-template-columns:minmax(0,2fr) minmax(0,3fr)}}
.three>*,.two>*,.split>*{min-width:0}
figure{margin:0;min-width:0}
figcaption{font-weight:600;margin-bottom:.35rem}
.two>div>figure+figure{margin-top:1.4rem}
svg.plot{display:block;width:100%;max-width:34rem;height:auto}
.split svg.plot{max-width:28rem}
svg.graph{display:block;width:100%;height:auto}
svg text{fill:var(--muted);font:12px system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;font-variant-numeric:tabular-nums}
svg text.axis{fill:var(--fg)}
svg text.head{fill:var(--fg);font-weight:600;font-size:13px}
svg text.note{font-size:11px}
image{image-rendering:pixelated}
.grid{stroke:var(--rule);stroke-width:1;fill:none}
.frame,.tick{stroke:var(--muted);stroke-width:1;fill:none}
.outline{stroke:var(--muted);stroke-width:1}
.nothing{fill:var(--soft)}
.hatch{stroke:var(--muted);stroke-width:1}
.l1,.l2,.l3,.l4{fill:none;stroke-width:1.7;stroke-linejoin:round}
.l1{stroke:var(--c1)}
.l2{stroke:var(--c2);stroke-dasharray:6 3}
.l3{stroke:var(--c3);stroke-dasharray:2 2.5}
.l4{stroke:var(--c4);stroke-width:1.2}
.band{stroke-width:.8;fill-opacity:.3}
.l1.band,.l1.solid{fill:var(--c1)}
.l2.band{fill:none}
.l2.solid{fill:var(--c2)}
.l4.band,.l4.solid{fill:var(--c4)}
.b1{fill:var(--c1);fill-opacity:.45}
.b4{fill:var(--c4);fill-opacity:.75}
.bad{fill:var(--no)}
.bound{stroke:var(--no);stroke-width:1.6;stroke-dasharray:7 3;fill:none}
.dot{fill:var(--bg);stroke:var(--c1);stroke-width:2}
.own{fill:var(--c2);stroke:var(--c2);stroke-width:2}
.node{fill:var(--soft);stroke:var(--c1);stroke-width:1.4}
.store{fill:var(--bg);stroke:var(--muted);stroke-width:1.2}
.group{fill:none;stroke:var(--c4);stroke-width:1.6;stroke-dasharray:5 4}
.edge{fill:none;stroke:var(--muted);stroke-width:1.3}
.tip{fill:var(--muted)}
.legend{display:flex;flex-wrap:wrap;gap:.2rem 1.1rem;list-style:none;margin:.2rem 0 0;padding:0;font-size:.85rem;color:var(--muted)}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:.9rem}
caption{text-align:left;font-weight:600;padding:.4rem 0;font-size:1rem}
th{font-weight:500;text-align:left}
th,td{padding:.28rem .6rem .28rem 0;vertical-align:top}
.facts{width:100%;margin-bottom:1.2rem;table-layout:fixed}
.facts th{width:38%;color:var(--muted);overflow-wrap:anywhere}
.facts td{overflow-wrap:anywhere}
.facts tr,.data tr{border-bottom:1px solid var(--rule)}
.scroll{overflow-x:auto;max-width:100%}
.data td{text-align:right;white-space:nowrap}
.data thead th{text-align:right;vertical-align:bottom;color:var(--muted)}
.data thead th:first-child,.data .words{text-align:left}
.data.full{width:100%}
.data td[colspan]{white-space:normal;text-align:left}
.bars{width:100%}
.bars th{font-size:.88rem;width:40%;overflow-wrap:anywhere;line-height:1.25}
.bars small{color:var(--muted);float:right;margin-left:.4rem}
.unseen{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%);white-space:nowrap}
.bars td:last-child{white-space:nowrap;text-align:right;width:5.6rem;padding-right:0}
.track{vertical-align:middle}
.fill{height:.85rem;min-width:1px;border-radius:2px;-webkit-print-color-adjust:exact;print-color-adjust:exact}
.fill1{background:var(--c1)}
.fill2{background:repeating-linear-gradient(135deg,var(--c2) 0 4px,transparent 4px 6px);border:1px solid var(--c2)}
details{margin:.5rem 0}
summary{cursor:pointer;padding:.2rem 0}
footer{margin-top:2.6rem;padding-top:.8rem;border-top:1px solid var(--rule)}
footer p{margin:.2rem 0}
@media print{body{font-size:10.5pt}main{max-width:none;padding:0}.three{grid-template-columns:repeat(3,1fr);gap:.8rem}
.two{grid-template-columns:1fr 1fr}figure,.facts,.tile,.verdict{break-inside:avoid}h2{break-after:avoid}.scroll{overflow:visible}
.data td{white-space:normal}}
)css";
}

}  // namespace fz::report
