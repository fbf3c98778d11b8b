"""What a class needs besides pages: sheets, snapshots, results, rosters, the sample course."""
