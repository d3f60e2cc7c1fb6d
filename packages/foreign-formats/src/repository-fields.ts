/** Holds where a session worked, as fields of an entry. */
interface RepositoryFields {
  readonly repository?: string;
  readonly branch?: string;
}

const mostLength = 400;

/**
 * Returns the repository and the branch that a transcript states. A secret in the address of the repository is left out.
 * `HEAD` states that there was no branch.
 */
export function repositoryFields(repository: unknown, branch: unknown): RepositoryFields {
  const [place, name] = [repository, branch].map((value) =>
    typeof value === "string" && value.length <= mostLength ? value.trim() : "",
  );
  return {
    ...(place === undefined || place === "" ? {} : { repository: withoutSecret(place) }),
    ...(name === undefined || name === "" || name === "HEAD" ? {} : { branch: name }),
  };
}

/** Removes user and password from an address such as `https://user:token@example.com/app.git`. */
function withoutSecret(repository: string): string {
  const start = repository.indexOf("://");
  if (start === -1) return repository;
  const from = start + 3;
  const end = repository.indexOf("/", from);
  const host = end === -1 ? repository.slice(from) : repository.slice(from, end);
  return repository.slice(0, from) + host.slice(host.lastIndexOf("@") + 1) + (end === -1 ? "" : repository.slice(end));
}
