# Draws of a Gaussian mixture's posterior by the loop of bayesm's rnmixGibbs, and coda's effective sizes.
#
#     Rscript gibbs.R FOLDER N P K SEGMENT BURN_IN MOST GOAL SEED
#
# The folder holds, as doubles, X.bin (N x P, by columns), labels.bin (N, from 1), and of the prior mean.bin,
# mean_precision.bin, degrees_of_freedom.bin, scale.bin and concentration.bin. The public function starts from labels of its own and returns the labels of
# every draw at once; its loop is called here, so that a chain starts where it is told and is run in segments,
# until every parameter has an effective size of GOAL or the chain has MOST draws.
# Written to the folder: draws.bin, by draws: log weights, means, entries on and above the diagonal of the
# precisions, row by row; effective.bin, their effective sizes; seconds.bin, of burn-in and of sampling.

suppressMessages({library(bayesm); library(coda)})
arguments <- commandArgs(trailingOnly = TRUE)
folder <- arguments[1]
numbers <- as.numeric(arguments[-1])
names(numbers) <- c("n", "p", "k", "segment", "burn_in", "most", "goal", "seed")
n <- numbers[["n"]]; p <- numbers[["p"]]; k <- numbers[["k"]]

stored <- function(name, count) {
  file <- file(file.path(folder, paste0(name, ".bin")), "rb")
  on.exit(close(file))
  readBin(file, "double", count)
}
X <- matrix(stored("X", n * p), n, p)
mean <- matrix(stored("mean", p), 1, p)
scale <- matrix(stored("scale", p * p), p, p)
mean_precision <- matrix(stored("mean_precision", 1))
degrees_of_freedom <- stored("degrees_of_freedom", 1)
concentration <- rep(stored("concentration", 1), k)

# parameters of every draw, by columns
parameters <- function(nmix) {
  vapply(seq_along(nmix$compdraw), function(draw) {
    components <- nmix$compdraw[[draw]]
    means <- vapply(components, function(component) as.vector(component$mu), numeric(p))
    precisions <- vapply(components, function(component) {
      precision <- component$rooti %*% t(component$rooti)
      precision[lower.tri(precision, diag = TRUE)]  # of a symmetric matrix: its upper part, row by row
    }, numeric(p * (p + 1) / 2))
    c(log(nmix$probdraw[draw, ]), means, precisions)
  }, numeric(k * (1 + p + p * (p + 1) / 2)))
}

set.seed(numbers[["seed"]])
labels <- stored("labels", n)
weights <- tabulate(labels, k) / n
segment <- function(count) {
  before <- proc.time()
  nmix <- bayesm:::rnmixGibbs_rcpp_loop(
    X, mean, mean_precision, degrees_of_freedom, scale, concentration, weights, labels, count, 1, 0
  )
  elapsed <- sum((proc.time() - before)[1:2])  # of the processor, which other processes do not lengthen
  labels <<- nmix$zdraw[count, ]
  weights <<- nmix$probdraw[count, ]
  list(draws = parameters(nmix), seconds = elapsed)
}

# in segments, as the labels of all draws of a segment are in memory: their draws, and seconds
chain <- function(count) {
  draws <- list()
  seconds <- 0
  while (count > 0) {
    one <- segment(min(count, numbers[["segment"]]))
    draws <- c(draws, list(one$draws))
    count <- count - ncol(one$draws)
    seconds <- seconds + one$seconds
  }
  list(draws = do.call(cbind, draws), seconds = seconds)
}

burn_in <- chain(numbers[["burn_in"]])
draws <- NULL
seconds <- 0
count <- min(numbers[["most"]], 2000)
repeat {
  more <- chain(count)
  draws <- cbind(draws, more$draws)
  seconds <- seconds + more$seconds
  effective <- effectiveSize(mcmc(t(draws)))
  if (min(effective) >= numbers[["goal"]] || ncol(draws) >= numbers[["most"]]) break
  # as many more as it seems to take, and no more than there are: early estimates are rough
  missing <- 1.05 * ncol(draws) * (numbers[["goal"]] / max(min(effective), 1) - 1)
  count <- ceiling(min(max(missing, 500), ncol(draws), numbers[["most"]] - ncol(draws)))
}

keep <- function(name, values) {
  file <- file(file.path(folder, paste0(name, ".bin")), "wb")
  on.exit(close(file))
  writeBin(as.double(values), file)
}
keep("draws", draws)
keep("effective", effective)
keep("seconds", c(burn_in$seconds, seconds))
