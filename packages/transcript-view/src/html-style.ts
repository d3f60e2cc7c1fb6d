/**
 * The style of an exported file. All sizes are multiples of 4 px, texts of 13, 14, 16, 20 and 28 px. Each color has a
 * contrast of at least 4.5:1 on its ground, in both themes.
 */
export const htmlStyle = `
:root{color-scheme:light dark;--bg:#fdfdfc;--raised:#f5f5f2;--line:#e2e2dc;--text:#1e2124;--soft:#5d646c;--accent:#23569f;--prompt:#eef3fa;--edge:#b9cde9;--add:#e5f4e8;--added:#14532d;--cut:#fceae7;--removed:#8a1c15;--warn:#7a4a00;--warnbg:#fdf2dc;--error:#a3221a;--errorbg:#fdebe8}
@media (prefers-color-scheme:dark){:root{--bg:#131517;--raised:#1b1e21;--line:#2e3237;--text:#e3e3df;--soft:#9ba3ac;--accent:#8db6f2;--prompt:#18212d;--edge:#33506f;--add:#11271a;--added:#9bd6ab;--cut:#2f1716;--removed:#f0a9a2;--warn:#e9c07a;--warnbg:#2a210f;--error:#f3a49c;--errorbg:#301816}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%;text-size-adjust:100%;scroll-padding-top:24px}
body{margin:0;background:var(--bg);color:var(--text);font:16px/1.625 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",sans-serif;overflow-wrap:break-word}
.page{max-width:1136px;margin:0 auto;padding:56px 32px 96px;display:grid;grid-template-columns:232px minmax(0,760px);column-gap:64px;justify-content:center}
.top,.foot{grid-column:2}
a{color:var(--accent);text-underline-offset:2px;text-decoration-thickness:1px}
a:focus-visible,summary:focus-visible{outline:2px solid var(--accent);outline-offset:2px;border-radius:4px}
h1{margin:0 0 16px;font-size:28px;line-height:36px;font-weight:650;letter-spacing:-.012em;text-wrap:balance}
.facts{margin:0;display:grid;grid-template-columns:max-content minmax(0,1fr);gap:4px 16px;font-size:14px;line-height:20px}
.facts dt{color:var(--soft)}
.facts dd{margin:0;overflow-wrap:anywhere}
.scan{margin:24px 0 0;padding:12px 16px;border-radius:8px;background:var(--raised);font-size:14px;line-height:20px}
.scan.warn{background:var(--warnbg);color:var(--warn)}
.parts{margin:16px 0 0;font-size:14px;line-height:20px;color:var(--soft)}
.toc{grid-column:1;grid-row:1/4;position:sticky;top:32px;align-self:start;max-height:calc(100vh - 64px);overflow:auto;font-size:14px;line-height:20px;scrollbar-width:thin}
.toc h2{margin:0 0 8px;font-size:13px;line-height:20px;font-weight:600;color:var(--soft)}
.toc ol{list-style:none;margin:0;padding:0}
.toc a{display:grid;grid-template-columns:24px minmax(0,1fr);padding:4px 8px 4px 0;color:inherit;text-decoration:none;border-radius:6px}
.toc a:hover{background:var(--raised)}
.toc .n,.toc small{color:var(--soft)}
.toc small{grid-column:2;font-size:13px}
.toc .t{display:-webkit-box;-webkit-line-clamp:2;-webkit-box-orient:vertical;overflow:hidden}
main{grid-column:2;margin-top:40px}
section{padding-top:40px;content-visibility:auto;contain-intrinsic-size:auto 800px}
section:first-child{padding-top:0}
.prompt{margin:0 0 24px;padding:16px 20px 20px;background:var(--prompt);border-left:4px solid var(--edge);border-radius:4px 12px 12px 4px}
.h{display:flex;flex-wrap:wrap;align-items:baseline;gap:0 12px;margin:0 0 8px;font-size:13px;line-height:20px;font-weight:600;color:var(--soft)}
.h a{color:var(--accent);text-decoration:none;font-variant-numeric:tabular-nums}
.h b{color:var(--text);font-weight:650}
.h time,.h .m{font-weight:400;font-variant-numeric:tabular-nums}
.assistant{margin-top:20px}
.by{margin-top:24px;margin-bottom:4px}
.off{opacity:.82;border-left:2px dashed var(--line);padding-left:16px}
.marker{display:flex;flex-wrap:wrap;gap:0 8px;margin:16px 0;font-size:13px;line-height:20px;color:var(--soft)}
.marker b{font-weight:600}
.redacted{margin:16px 0;padding:8px 12px;border:1px dashed var(--line);border-radius:8px;font-size:14px;line-height:20px;color:var(--soft)}
details{margin-top:8px;border:1px solid var(--line);border-radius:8px;overflow:clip}
details+details{margin-top:4px}
summary{display:flex;align-items:center;gap:8px;padding:8px 12px;font-size:13px;line-height:20px;cursor:pointer;list-style:none}
summary::-webkit-details-marker{display:none}
summary::before{content:"";flex:none;width:6px;height:6px;margin:0 4px 0 2px;border-right:1.5px solid var(--soft);border-bottom:1.5px solid var(--soft);transform:rotate(-45deg)}
details[open]>summary::before{transform:rotate(45deg) translate(-1px,-1px)}
summary:hover{background:var(--raised)}
summary b{flex:none;font-weight:600}
summary .d{flex:1;min-width:0;overflow:hidden;text-overflow:ellipsis;white-space:nowrap;color:var(--soft)}
.tool summary .d,.command summary .d,.tool summary b{font-family:ui-monospace,"SF Mono",SFMono-Regular,Menlo,Consolas,"Liberation Mono",monospace;font-size:13px}
details>div{padding:0 12px 12px}
.tool>div,.command>div{border-top:1px solid var(--line);padding-top:12px}
.thinking,.note{border-style:dashed}
.thinking>div,.note>div{font-size:14px;line-height:24px;color:var(--soft)}
.compaction{margin:32px 0!important;background:var(--raised)}
.compaction>div{font-size:14px;line-height:24px}
.b{flex:none;padding:0 8px;border-radius:10px;font-size:13px;font-variant-numeric:tabular-nums;color:var(--soft)}
.b+.b{margin-left:-8px}
.b.added{color:var(--added)}.b.removed{color:var(--removed)}
.b.error{background:var(--errorbg);color:var(--error)}
.b.warning{background:var(--warnbg);color:var(--warn)}
.ends{margin-top:8px;font-size:13px}
.ends .b+.b{margin-left:4px}
.label{margin:12px 0 4px;font-size:13px;line-height:20px;font-weight:600;color:var(--soft)}
.more,.media{margin-top:4px;font-size:13px;line-height:20px;color:var(--soft)}
.media{display:inline-block;padding:4px 12px;margin-right:8px;border:1px solid var(--line);border-radius:8px}
p,pre,ul,ol,blockquote,table,h4{margin:12px 0 0}
.assistant>:first-child,details>div>:first-child,blockquote>:first-child,li>:first-child,.prompt>.h+*,.by+*{margin-top:0}
p,li,h4{white-space:pre-line}
ul,ol{padding-left:24px}
li{margin-top:4px}
li>p,li>ul,li>ol{margin-top:4px}
h4{margin-top:24px;font-size:16px;line-height:24px;font-weight:650}
h4.d1{font-size:20px;line-height:28px}
blockquote{padding-left:16px;border-left:3px solid var(--line);color:var(--soft)}
pre,code{font-family:ui-monospace,"SF Mono",SFMono-Regular,Menlo,Consolas,"Liberation Mono",monospace;font-size:13px;line-height:20px;tab-size:4}
code{padding:2px 4px;border-radius:4px;background:var(--raised);overflow-wrap:anywhere}
.prompt code{background:color-mix(in srgb,var(--edge) 30%,transparent)}
pre{padding:12px 16px;border-radius:8px;background:var(--raised);white-space:pre-wrap;overflow-wrap:anywhere}
.prompt pre,.compaction pre{background:var(--bg)}
.tool pre,.command pre{padding:8px 12px}
pre.t{padding:0;background:none;font:inherit}
.lang{margin:12px 0 -8px;padding-left:16px;font-size:13px;line-height:20px;color:var(--soft)}
.diff{padding:8px 12px;background:none}
.tool>div>.diff:first-child{margin:-12px -12px 0;padding:8px 12px;border-radius:0}
.diff span{display:block;margin:0 -12px;padding:0 12px}
.diff .add{background:var(--add);color:var(--added)}
.diff .cut{background:var(--cut);color:var(--removed)}
.diff .at{color:var(--soft)}
.wide{overflow-x:auto;margin-top:12px}
table{border-collapse:collapse;margin:0;font-size:14px;line-height:20px}
th,td{padding:8px 16px 8px 0;border-bottom:1px solid var(--line);text-align:left;vertical-align:top}
th{font-weight:650}
.right{text-align:right}
.hr{height:1px;margin:24px 0;background:var(--line)}
.del{text-decoration:line-through}
.host{color:var(--soft)}
img{display:block;max-width:100%;height:auto;margin-top:12px;border-radius:8px}
.foot{margin-top:64px;padding-top:16px;border-top:1px solid var(--line);font-size:13px;line-height:20px;color:var(--soft)}
@media (max-width:960px){.page{display:block;max-width:824px;padding:32px 20px 64px}.toc{position:static;max-height:320px;margin-top:32px;padding-top:16px;border-top:1px solid var(--line)}h1{font-size:24px;line-height:32px}.prompt{padding:12px 16px 16px}}
@media print{:root{--bg:#fff;--raised:#f5f5f2;--line:#d5d5d0;--text:#000;--soft:#4a4f55;--prompt:#f2f5fa;--add:#e5f4e8;--added:#14532d;--cut:#fceae7;--removed:#8a1c15;color-scheme:light}.page{display:block;max-width:none;padding:0}.toc{position:static;max-height:none}body{font-size:11pt}section{content-visibility:visible}details::details-content{content-visibility:visible;height:auto}.prompt,summary{break-after:avoid}a{color:inherit}}
`;
