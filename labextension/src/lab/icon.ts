/** A call that leaves the program and comes back. */
export const ICON = `<svg xmlns="http://www.w3.org/2000/svg" width="16" viewBox="0 0 24 24">
  <g fill="none" stroke-width="2" stroke-linecap="round" stroke-linejoin="round">
    <path class="jp-icon3" stroke="#616161" d="M3 6h9a6 6 0 0 1 0 12H6m4-4-4 4 4 4"/>
  </g>
  <circle class="jp-icon3" fill="#616161" cx="18" cy="12" r="3"/>
</svg>`;
