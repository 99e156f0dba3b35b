// Written by jupyter_jaxcb.skeleton.typescript(); do not edit.

/** One shape of the host calls of a line. */
export interface ShapeView {
  arrays: string;
  vmap: string;
  calls: string;
}

/** One call site. */
export interface SiteView {
  function: string;
  flavor: string;
  where: string;
  line: number;
  tone: string;
  status: string;
  reason: string;
  advice: string;
  shapes: ShapeView[];
  errors: string[];
}

/** What is equal in every run of the same code. */
export interface FactsView {
  headline: string;
  sites: SiteView[];
}

/** What differs from run to run. */
export interface MeasuredView {
  times: string[];
  site: number[];
  start_ns: number[];
  duration_ns: number[];
}
