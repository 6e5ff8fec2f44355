/** Puts the dashboard on the page. */
import { render } from "preact";
import { App } from "./app.tsx";
import "./base.css";
import "./app.css";

const place = document.getElementById("app");
if (place !== null) render(<App />, place);
