"""The experiments, each a module with some of these functions:

- ``cases(seeds, methods)``: what to run;
- ``pages(frame)``: tables that records alone can make, by name;
- ``draw(frame, folder)``: figures that records alone can make;
- ``write_fits(folder, report, n_jobs)``: tables and figures that need the fits themselves.
"""
