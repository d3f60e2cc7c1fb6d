import type { ComponentChildren, JSX } from "preact";
import type { ApiError } from "../api.ts";
import { setToken } from "../token.ts";
import { Command } from "./copy-button.tsx";
import { shown } from "./text.ts";

interface StateProps {
  readonly title: string;
  readonly children?: ComponentChildren;
}

export function EmptyState({ title, children }: StateProps): JSX.Element {
  return (
    <div class="state">
      <h2>{title}</h2>
      {children}
    </div>
  );
}

interface FailedProps {
  readonly error: ApiError;
  readonly reload?: () => void;
}

/** Shows what went wrong and what to do, in the server's own words. */
export function FailedState({ error, reload }: FailedProps): JSX.Element {
  const isToken = error.status === 401 || error.status === 403;
  const isMissing = error.status === 404 && error.code === "ROUTE_NOT_FOUND";
  if (isMissing)
    return (
      <EmptyState title="This server is older than this page">
        <p>It has no answer for this view. Update the server, then reload.</p>
      </EmptyState>
    );
  return (
    <div class="state failed" role="alert">
      <h2>{isToken ? "The token is not accepted" : titleOf(error)}</h2>
      <p>{shown(error.message)}</p>
      {error.remedy === "" ? null : <p class="soft">{shown(error.remedy)}</p>}
      <div class="actions">
        {isToken ? (
          <button type="button" class="button primary" onClick={enterToken}>
            Enter another token
          </button>
        ) : reload === undefined ? null : (
          <button type="button" class="button" onClick={reload}>
            Try again
          </button>
        )}
      </div>
      <p class="code">{error.code}</p>
    </div>
  );
}

function enterToken(): void {
  setToken(null);
  location.reload();
}

function titleOf({ status, code }: ApiError): string {
  if (code === "UNREACHABLE") return "No connection";
  if (status === 404) return "Not found";
  if (status === 429) return "Too many requests";
  return status >= 500 ? "The server failed" : "The request was refused";
}

/** Shows gray rows in the place of a list, so that nothing jumps when it arrives. */
export function LoadingRows({ rows = 8 }: { readonly rows?: number }): JSX.Element {
  return (
    <div class="loading" role="status" aria-label="Loading">
      {Array.from({ length: rows }, (_, index) => (
        <div key={index} class="bone" data-width={index % 4} />
      ))}
    </div>
  );
}

export function NoSessions(): JSX.Element {
  return (
    <EmptyState title="No sessions yet">
      <p>
        Import the transcripts of the programs you use. Nothing leaves this machine, and their files stay as they are.
      </p>
      <Command text="throughline import ~/.claude ~/.codex ~/.pi" />
    </EmptyState>
  );
}
