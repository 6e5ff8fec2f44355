/** Places in the dashboard, after the # of the address: `#/jobs/3/hosts?limit=50`. */
import { useEffect, useState } from "preact/hooks";

export interface Place {
  readonly steps: readonly string[];
  readonly query: URLSearchParams;
}

function placeOf(hash: string): Place {
  const [path = "", search = ""] = hash.replace(/^#?\/?/, "").split(/\?(.*)/s);
  return { steps: path.split("/").filter((step) => step !== ""), query: new URLSearchParams(search) };
}

export function hrefOf(path: string, query: Readonly<Record<string, string | null>> = {}): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value !== null && value !== "") search.set(name, value);
  return `#/${path}${search.size === 0 ? "" : `?${search}`}`;
}

export function go(href: string): void {
  location.hash = href;
}

export function usePlace(): Place {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const update = () => setHash(location.hash);
    addEventListener("hashchange", update);
    return () => removeEventListener("hashchange", update);
  }, []);
  return placeOf(hash);
}
