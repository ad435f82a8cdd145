"""The interactive page: click a goal and see what each run has learned, beside the ground truth.

Python: `world` (what is shown), `snapshots` (what agents do in it), `tables` (both in few bytes), `page` (the file).
JavaScript, without a build step: `data` (decodes tables), `walk` (greedy walks), `colors`, `symbols` and `map` (draw
on a canvas), `details` (numbers and outcomes as text), `view` (what is selected, also in the URL), `panel` (the maps of
a planner), `player` (plays walks), `table` (worlds without cells), `main` (controls, pointer and keyboard). A browser
gets them as one script, made by `page.script`.
"""
