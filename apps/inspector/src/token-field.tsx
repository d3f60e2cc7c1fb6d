import type { JSX, TargetedEvent } from "preact";
import { setToken } from "./token.ts";
import { Command } from "./ui/copy-button.tsx";

/** Asks for the token when the address brought none. It stays in this tab. */
export function TokenField(): JSX.Element {
  const submit = (event: TargetedEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const text = String(new FormData(event.currentTarget).get("token") ?? "").trim();
    if (text === "") return;
    setToken(text);
    location.reload();
  };
  return (
    <main class="page token" id="main">
      <h1>Open your sessions</h1>
      <p>
        This page reads with a token. The command below starts it with one. Its address ends in <code>#token=</code>.
      </p>
      <Command text="throughline ui" />
      <form onSubmit={submit}>
        <label for="token">Or paste a token</label>
        <div class="token-row">
          <input id="token" name="token" class="field" type="password" autocomplete="off" required placeholder="tl_…" />
          <button type="submit" class="button primary">
            Open
          </button>
        </div>
        <p class="soft">It stays in this tab, and goes when you close it.</p>
      </form>
    </main>
  );
}
