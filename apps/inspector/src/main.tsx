import { render } from "preact";
import "./style/base.css";
import "./style/home.css";
import "./style/session.css";
import "./style/transcript.css";
import "./style/views.css";
import { App } from "./app.tsx";
import { followLinks } from "./router.ts";
import { applyTheme } from "./theme.ts";
import { takeToken } from "./token.ts";

takeToken();
applyTheme();
followLinks();
const root = document.getElementById("app");
if (root !== null) render(<App />, root);
