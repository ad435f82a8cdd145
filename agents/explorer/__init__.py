"""The interactive page: click a goal and see what each run has learned, beside the ground truth.

Python: `world` (what is shown), `snapshots` (what the agents do in it), `tables` (both in few bytes), `page` (the file).
JavaScript: `data.js` (decodes the tables), `walk.js` (greedy walks), `colors.js`, `map.js` (draws), `details.js` (numbers
and outcomes as text), `view.js` (what is selected, also in the URL), `table.js` (worlds without cells), `main.js`.
"""
