export function Results(){ return null; }
