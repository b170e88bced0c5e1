"""The experiments of Jiang & Li (2016), one file each, with what their figures show and their text claims."""
