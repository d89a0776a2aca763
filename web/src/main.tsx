import { render } from "preact";

render(<p>Explorer</p>, document.getElementById("explorer") ?? document.body);
