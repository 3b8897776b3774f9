# mclust's fit of a Gaussian mixture with ellipsoids of any shape, and its nonparametric bootstrap.
#
#     Rscript mclust_bootstrap.R FOLDER N P K REPLICATES
#
# The folder holds X.bin, doubles (N x P, by columns). Written to it, of all replicates and by columns:
# weights.bin (replicates x K), means.bin (replicates x P x K), covariances.bin (replicates x P x P x K); and
# seconds.bin, of the processor, of fit and bootstrap.

suppressMessages(library(mclust))
arguments <- commandArgs(trailingOnly = TRUE)
folder <- arguments[1]
numbers <- as.integer(arguments[-1])
names(numbers) <- c("n", "p", "k", "replicates")

file <- file(file.path(folder, "X.bin"), "rb")
X <- matrix(readBin(file, "double", numbers[["n"]] * numbers[["p"]]), numbers[["n"]], numbers[["p"]])
close(file)

set.seed(1)
before <- proc.time()
fit <- Mclust(X, G = numbers[["k"]], modelNames = "VVV", verbose = FALSE)
found <- MclustBootstrap(fit, nboot = numbers[["replicates"]], type = "bs", verbose = FALSE)
seconds <- sum((proc.time() - before)[1:2])

keep <- function(name, values) {
  file <- file(file.path(folder, paste0(name, ".bin")), "wb")
  on.exit(close(file))
  writeBin(as.double(values), file)
}
keep("weights", found$pro)
keep("means", found$mean)
keep("covariances", found$variance)
keep("seconds", seconds)
