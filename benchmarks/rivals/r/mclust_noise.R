# mclust's fit of a Gaussian mixture with a noise component: a uniform density over the smaller of two boxes
# around the rows, of which one has the sides along the axes and one along the principal axes.
#
#     Rscript mclust_noise.R FOLDER N P K
#
# The folder holds, as doubles, X.bin (N x P, by columns) and start.bin (N; 1 for rows that start as noise).
# Written to it: weights.bin (K, and that of the noise), means.bin (P x K, by columns), labels.bin (N; 0 for
# noise), and seconds.bin, of the processor.

suppressMessages(library(mclust))
arguments <- commandArgs(trailingOnly = TRUE)
folder <- arguments[1]
numbers <- as.integer(arguments[-1])
names(numbers) <- c("n", "p", "k")

given <- function(name, length) {
  file <- file(file.path(folder, paste0(name, ".bin")), "rb")
  on.exit(close(file))
  readBin(file, "double", length)
}
X <- matrix(given("X", numbers[["n"]] * numbers[["p"]]), numbers[["n"]], numbers[["p"]])
start <- list(noise = given("start", numbers[["n"]]) == 1)

before <- proc.time()
fit <- Mclust(X, G = numbers[["k"]], modelNames = "VVV", initialization = start, verbose = FALSE)
seconds <- sum((proc.time() - before)[1:2])
if (is.null(fit)) stop("mclust found no fit")

keep <- function(name, values) {
  file <- file(file.path(folder, paste0(name, ".bin")), "wb")
  on.exit(close(file))
  writeBin(as.double(values), file)
}
keep("weights", fit$parameters$pro)
keep("means", fit$parameters$mean)
keep("labels", fit$classification)
keep("seconds", seconds)
