"""The experiments of Jiang & Li (2016), one file per experiment, with the numbers of their figures and their claims."""
