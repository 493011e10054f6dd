//! How pages look: one sheet, in each of them.

pub(super) const STYLE: &str = "
:root{--fg:#1c1e21;--bg:#fff;--dim:#667;--edge:#dde;--ran:#d9f2dc;--missed:#fbdcdc;--part:#fbf0c9;
--unknown:#ececf0;--bar:#3a9d4a;--bar-no:#d6675f;--link:#0b57b0}
@media(prefers-color-scheme:dark){:root{--fg:#dfe2e7;--bg:#16181c;--dim:#99a;--edge:#33363d;
--ran:#163d1f;--missed:#4d1b1d;--part:#453a12;--unknown:#2a2c33;--bar:#4caf5d;--bar-no:#b5493f;--link:#7db4f5}}
*{box-sizing:border-box}
body{margin:0 auto;padding:1rem;max-width:80rem;color:var(--fg);background:var(--bg);
font:16px/1.45 system-ui,sans-serif}
h1{font-size:1.3rem;overflow-wrap:anywhere;margin:.2rem 0}
a{color:var(--link);text-decoration:none}a:hover{text-decoration:underline}
p,li{color:var(--dim);margin:.3rem 0}ul{padding-left:1.2rem;margin:.3rem 0}
.wide{overflow-x:auto;border:1px solid var(--edge);border-radius:.4rem;margin:1rem 0}
table{border-collapse:collapse;width:100%}
th,td{padding:.25rem .6rem;text-align:right;white-space:nowrap}
th:first-child,td:first-child{text-align:left;white-space:normal;overflow-wrap:anywhere;min-width:9rem}
thead th{color:var(--dim);font-weight:500;border-bottom:1px solid var(--edge)}
tr.folder td{font-weight:600;border-top:1px solid var(--edge)}
tr.all td{font-weight:600}tr.file td:first-child{padding-left:1.6rem}
meter{display:none}
.bar{display:inline-block;width:4.5rem;height:.55rem;border-radius:.2rem;background:var(--bar-no);
overflow:hidden;vertical-align:middle;margin-right:.4rem}
.bar i{display:block;height:100%;background:var(--bar)}
.n{color:var(--dim);font-size:.85em}
pre,code,.code{font:13px/1.4 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
pre{overflow-x:auto}
.code td{padding:0 .6rem;white-space:pre;text-align:left;vertical-align:top}
.code td:first-child{min-width:0;text-align:right;color:var(--dim);user-select:none;white-space:pre}
.code td.b{user-select:none;white-space:normal}.b div{width:max-content;max-width:min(9rem,25vw)}.code td:last-child{width:100%}
tr.ran td{background:var(--ran)}tr.missed td{background:var(--missed)}
tr.unknown td{background:var(--unknown)}tr.part td{background:var(--part)}
tr.inferred td:first-child{border-left:4px dotted var(--dim)}
td:first-child{border-left:4px solid transparent}
.chip{display:inline-block;min-width:1.1em;text-align:center;border-radius:.2rem;margin-right:.15rem;
border:1px solid var(--edge);background:var(--bg);padding:0 .15rem}
.chip.yes{border-color:var(--bar)}.chip.no{border-color:var(--bar-no);background:var(--missed)}
.legend span{padding:.1rem .5rem;border-radius:.2rem;margin-right:.4rem;color:var(--fg)}
.legend .ran{background:var(--ran)}.legend .missed{background:var(--missed)}
.legend .part{background:var(--part)}.legend .unknown{background:var(--unknown)}
.legend .inferred{border-left:4px dotted var(--dim)}
summary{cursor:pointer;color:var(--dim)}
";
