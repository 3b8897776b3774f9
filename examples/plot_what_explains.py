"""
==============================================================
Which voters place Clinton left of Dole, and how do they vote?
==============================================================

Before the presidential election of 1996, 944 Americans placed themselves and both candidates,
Bill Clinton and Bob Dole, on a scale from 1 (extremely liberal) to 7 (extremely conservative).
Which kinds of voters are there? Does education make a difference? And how do they vote?

The kind of a voter is not known, only probable. Who takes it for known gets wrong answers.
"""

# %%
# Three kinds of voters
# ---------------------
# The table is of the American National Election Study; the file lies beside this script. Answers
# are codes of categories, which has to be said.
import textwrap
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd

from sklearn_lrvb import LRVBLatentClassMixture
from sklearn_lrvb.displays import CovariateEffectsDisplay, OutcomeDifferencesDisplay

folder = Path(globals().get("__file__", "")).parent
people = pd.read_csv(folder / "anes96.csv", comment="#")
X = people[["selfLR", "ClinLR", "DoleLR"]].astype("category")

for n_components in range(1, 5):
    fit = LRVBLatentClassMixture(n_components, random_state=0).fit(X)
    print(
        f"{n_components} classes: log evidence {fit.log_evidence_:.1f}, "
        f"{fit.n_occupied_} of them with rows"
    )

# %%
# Three classes are far better than two, and a fourth stays empty. (``number_of_clusters``, which
# looks further, prefers a fourth class of about 4 % of the people, who answer at the ends of the
# scale. With it, what is said here of the others changes by less than the error bars.)
classes = LRVBLatentClassMixture(3, random_state=0).fit(X)
shares = classes.posterior(X).summary("weights")
for k in range(3):
    own, clinton, dole = (
        f"{table.loc[k] @ table.columns:.1f}" for table in classes.tables_.values()
    )
    share, sd = shares.loc[f"weight[{k}]", ["mean", "sd"]]
    print(
        f"class {k}: {share:.2f} +- {sd:.2f} of the people. On average they place themselves "
        f"at {own}, Clinton at {clinton}, Dole at {dole}"
    )
print(classes.model_check(X).verdict)

# %%
# Class 0 is liberal to moderate, class 1 conservative, and both place Clinton far to the left
# of Dole. Class 2 places Clinton to the *right* of Dole. Who are they?
#
# What explains the classes
# -------------------------
# Age and income (a code of 24 steps) are numbers. Education is made a category of three levels:
# up to high school; some college, or a short degree; and more.
levels = ["school", "college", "more"]
education = pd.cut(people["educ"], [0, 3, 5, 7], labels=levels).rename("education")
effects = classes.covariate_effects(X, people[["age", "income"]].join(education))
print(textwrap.fill(effects.verdict, 88))

labels = classes.predict(X)
shares = effects.summary("shares")
for level in levels:
    share, sd = shares.loc[f"share[2,education={level}]", ["estimate", "sd"]]
    by_label = (labels[education == level] == 2).mean()
    print(
        f"class 2 if all had {level}: {share:.2f} +- {sd:.2f}; by labels {by_label:.2f}"
    )

# %%
# If all had left school early, a third of the people would be in class 2; with the longest
# education, one in 25. Age and income are as they are. Labels show a smaller difference. In the
# picture, income makes class 1 likelier, and class 2 less likely:
CovariateEffectsDisplay.from_result(effects)
plt.show()

# %%
# This is no proof of a cause, as education was not drawn at random.
#
# Can it be trusted?
# ------------------
# It rests on an assumption: a covariate acts on the answers by way of the class alone. This is
# tested, and the note says what is doubtful:
print(textwrap.fill(effects.note, 88))

# %%
# Within a class, age goes with where people place themselves. No effect of age was claimed. The
# note names the surest pair of columns only; what of education, for which much was claimed?
direct = next(own for own in effects.direct_effects if own.other == "education")
print(
    f"{direct.other} and {direct.column} within classes: largest correlation of two of their "
    f"categories {direct.size:.2f}, p = {direct.p_value:.2f}"
)

# %%
# People with the longest education say less often than others of their class that Dole is
# extremely conservative. Does that make the effect? Without the column there are too few answers
# for three classes. So let these people have classes of their own, and look at the class that
# places Dole furthest to the left:
for longest in (False, True):
    rows = X[(education == "more") == longest]
    fit = LRVBLatentClassMixture(3, random_state=0).fit(rows)
    k = int((fit.tables_["DoleLR"] @ X["DoleLR"].cat.categories).idxmin())
    table = fit.posterior(rows).summary("weights")
    share, sd = table.loc[f"weight[{k}]", ["mean", "sd"]]
    who = "longest education" if longest else "all others"
    print(f"{who}: {len(rows)} people, {share:.2f} +- {sd:.2f} of them in this class")

# %%
# The difference is the same, from fits that share nothing. If there is a direct effect, it does not
# make the difference.
#
# What the classes explain
# ------------------------
# For whom do they vote, and do they watch as much news on television? Beside the estimate there
# is what labels say.
differences = classes.outcome_differences(X, people[["vote", "TVnews"]])
print(textwrap.fill(differences.verdict, 88))
votes = differences.summary("means")
by_label = people["vote"].eq("Dole").groupby(labels).mean()
for k in range(3):
    share, sd = votes.loc[f"mean[{k},vote=Dole]", ["estimate", "sd"]]
    print(
        f"class {k} votes for Dole: {share:.2f} +- {sd:.2f}; by labels {by_label[k]:.2f}"
    )

display = OutcomeDifferencesDisplay.from_result(differences)
display.axes_[0, 0].plot(range(3), by_label, "x", color="black", label="by labels")
display.axes_[0, 0].legend(fontsize="x-small", frameon=False)
plt.show()

# %%
# By labels nearly a quarter of class 0 votes for Dole. But some of those with the label 0 are
# conservatives, and many of these vote for Dole. Who is right? Put the vote into the table, as a
# fourth answer. Then it helps to define the classes, and within a class nearly all vote alike:
table = X.join(people["vote"])
together = LRVBLatentClassMixture(3, random_state=0).fit(table)
print("votes for Dole:", together.tables_["vote"]["Dole"].round(2).to_dict())
print(together.model_check(table).verdict)

# %%
# **Answer.** About half of the people are liberal to moderate, a third are conservative, and both
# know where the candidates stand. For 0.18 +- 0.02 Clinton is no further to the left than Dole.
# Education tells them apart: after school alone it would be 0.35 +- 0.04, after the longest
# education 0.04 +- 0.02. Of the conservatives nearly all vote for Dole, of the liberals and
# moderates 0.12 +- 0.04; labels say 0.23. In how often they watch the news on television the
# classes are not known to differ.
#
# Read on: the page `What explains the clusters? <../guide/what_explains_the_clusters.html>`_ of the
# user guide, and :ref:`sphx_glr_gallery_plot_latent_classes.py`.
