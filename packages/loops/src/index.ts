/** Datums, advantages, environments and training loops over a training client. Runs in browsers; reports are in `@loopwright/loops/node`. */
export type { DifferentiableLoss, DifferentiableValue } from './autodiff/value-and-grad.js';
export { valueAndGrad } from './autodiff/value-and-grad.js';
export type { Operand } from './autodiff/variable.js';
export { stack, Variable } from './autodiff/variable.js';
export { counted } from './counted.js';
export type { FieldColumns, FieldName } from './data/columns.js';
export type { CurriculumOptions, CurriculumOrder } from './data/curriculum.js';
export type { DataHash } from './data/data-hash.js';
export type { Dataset, DatasetOptions, Reading, ReadOptions } from './data/dataset.js';
export { datasetOf } from './data/dataset.js';
export type { DetectedFormat } from './data/detect-format.js';
export type { DataDigest } from './data/digest.js';
export { dataDigest } from './data/digest.js';
export type { JsonlOptions } from './data/jsonl-source.js';
export { jsonlSource, textSource } from './data/jsonl-source.js';
export type { Leak, LeakReport } from './data/leaks.js';
export { findLeaks } from './data/leaks.js';
export type { LongPrompts, LongPromptsOptions } from './data/long-prompts.js';
export { findLongPrompts } from './data/long-prompts.js';
export type { OrderedRows, RowPosition } from './data/ordered-rows.js';
export type { ShuffleOptions } from './data/ordering.js';
export type { PreferenceRow } from './data/preference-row.js';
export type { DataRow, JsonRow, RowError, RowPlace } from './data/row.js';
export { rowErrorText } from './data/row.js';
export { canonicalJson } from './data/row-hash.js';
export type { BytesHash, RowSource } from './data/source.js';
export type { SplitOptions } from './data/split.js';
export type { OnRowError, ReadingReport } from './data/tally.js';
export { reportText } from './data/tally.js';
export type {
  ChatRow,
  DataFormat,
  FormatRows,
  KtoRow,
  PromptCompletionRow,
  RlPromptRow,
} from './data/typed-rows.js';
export type { Agreement, TokenAgreement } from './datums/agreement.js';
export { agreement } from './datums/agreement.js';
export type { Tokens } from './datums/checks.js';
export type { ExplainOptions } from './datums/explain.js';
export { explain } from './datums/explain.js';
export type { RlDatumOptions, RlLossName, SampledSequence } from './datums/rl-datum.js';
export { rlDatum } from './datums/rl-datum.js';
export type { SftDatumOptions } from './datums/sft-datum.js';
export { sftDatum, sftDatumFromMessages } from './datums/sft-datum.js';
export type { ArithmeticEnvironment, ProblemsOptions } from './environments/arithmetic/environment.js';
export { arithmetic } from './environments/arithmetic/environment.js';
export { gradeArithmetic } from './environments/arithmetic/grader.js';
export type {
  ArithmeticLevel,
  ArithmeticOperation,
  ArithmeticProblem,
  ArithmeticSpace,
  ArithmeticSpaceOptions,
} from './environments/arithmetic/problems.js';
export {
  allProblems,
  arithmeticLevels,
  arithmeticOperations,
  arithmeticProblem,
  arithmeticSpace,
  drawProblem,
} from './environments/arithmetic/problems.js';
export type { ArithmeticSplit } from './environments/arithmetic/split.js';
export { arithmeticSplit, arithmeticSplits } from './environments/arithmetic/split.js';
export type { Answer, Environment, Grade, GradeContext, GradedComponent, Problem } from './environments/environment.js';
export type {
  Episode,
  EpisodeContext,
  EpisodeEnvironment,
  EpisodeProblem,
  ModelTurn,
  Reply,
  ToolCall,
  Unfinished,
} from './episodes/environment.js';
export type { EpisodeDatumsOptions } from './episodes/episode-datums.js';
export { episodeDatums } from './episodes/episode-datums.js';
export type { EpisodeRollout, EpisodeStatus, TakenTurn } from './episodes/run-episode.js';
export type { EpisodeGroup, RunEpisodesOptions } from './episodes/run-episodes.js';
export { runEpisodes } from './episodes/run-episodes.js';
export type { Tool, ToolDefinition, ToolOutcome, ToolReply } from './episodes/tools.js';
export { runTools } from './episodes/tools.js';
export type { EpisodeSequence, Segment } from './episodes/transcript.js';
export { displayWidth, escapeText, truncateText } from './escape-text.js';
export type { AnswerTimes, CompareModelsOptions, ModelComparison } from './evaluation/compare-models.js';
export { compareModels } from './evaluation/compare-models.js';
export type { RegressionOutcome } from './evaluation/regression.js';
export { casesToSettle, defaultMargin, regressionOutcome } from './evaluation/regression.js';
export type { Finding, FindingLevel } from './findings.js';
export { badFromGood } from './grader-gate/bad-from-good.js';
export type { BadFromGoodOptions, BadKind } from './grader-gate/bad-kinds.js';
export { badKinds } from './grader-gate/bad-kinds.js';
export type { GateDecision, GraderGate } from './grader-gate/require-gate.js';
export { requireGate } from './grader-gate/require-gate.js';
export type { GraderTest, TestGraderOptions } from './grader-gate/test-grader.js';
export { testGrader } from './grader-gate/test-grader.js';
export type {
  CallOverlap,
  ComponentWorth,
  Confusion,
  GateCase,
  GateGrade,
  GateOutcome,
  GateResult,
  GraderSpeed,
  WrongCase,
} from './grader-gate/words.js';
export type { AnswerMarker, FinalAnswer } from './graders/answers/final-answer.js';
export { finalAnswer } from './graders/answers/final-answer.js';
export type { NumberOptions, Tolerance } from './graders/answers/rational.js';
export type { Component, ComponentOptions, GoldOptions, Score, ScoreContext } from './graders/component.js';
export type { ExactMatchOptions } from './graders/exact.js';
export { exactMatch } from './graders/exact.js';
export type { Grader, GraderOptions } from './graders/grader.js';
export { createGrader } from './graders/grader.js';
export type { HttpRewardOptions } from './graders/http/http-reward.js';
export { httpReward } from './graders/http/http-reward.js';
export type { EndpointOptions } from './graders/http/post-json.js';
export type { HumanEvalRow } from './graders/human-eval.js';
export { humanEvalProgram, humanEvalTests } from './graders/human-eval.js';
export type { JsonField, JsonFieldsOptions, JsonSchemaOptions } from './graders/json/json-schema.js';
export { jsonFields, jsonSchema } from './graders/json/json-schema.js';
export type { JsonForm } from './graders/json/read-json.js';
export type { JsonSchema, SchemaDialect } from './graders/json/schema.js';
export type { CalibrateOptions, Calibration, LabelledAnswer } from './graders/judge/calibrate.js';
export { calibrateJudge } from './graders/judge/calibrate.js';
export type { Judge, JudgeOptions, Rating } from './graders/judge/judge.js';
export { createJudge } from './graders/judge/judge.js';
export type { LlmJudgeOptions } from './graders/judge/llm-judge.js';
export { llmJudge } from './graders/judge/llm-judge.js';
export type { JudgedAnswer, JudgeMessage } from './graders/judge/prompt.js';
export type { MathAnswerOptions, MathEquality } from './graders/math.js';
export { mathAnswer, sameMath } from './graders/math.js';
export type { NumericAnswerOptions } from './graders/numeric.js';
export { numericAnswer } from './graders/numeric.js';
export type { RegexMatchOptions } from './graders/regex.js';
export { regexMatch } from './graders/regex.js';
export type { ExpectedCall, ToolTraceOptions, TracedTurn } from './graders/tool-trace.js';
export { toolCallsOf, toolTrace } from './graders/tool-trace.js';
export type { UnitTests, UnitTestsOptions } from './graders/unit-tests.js';
export { unitTests } from './graders/unit-tests.js';
export type { Alarm } from './guard/alarm.js';
export { alarmText } from './guard/alarm.js';
export type {
  DatumFacts,
  DatumSource,
  GroupFacts,
  RowFacts,
  SampleFacts,
  SourcePart,
  StepFacts,
} from './guard/facts.js';
export type { AlarmDecision, Guard, GuardOptions } from './guard/guard.js';
export { createGuard } from './guard/guard.js';
export type { AlarmLimits, AlarmName } from './guard/registry.js';
export { alarmRules } from './guard/registry.js';
export type { GuardState } from './guard/state.js';
export type { DistillationOptions, StudentSample } from './losses/distillation.js';
export { distillationData } from './losses/distillation.js';
export type { DpoOptions, IpoOptions } from './losses/dpo.js';
export { dpo, ipo } from './losses/dpo.js';
export type { GspoOptions } from './losses/gspo.js';
export { gspo } from './losses/gspo.js';
export type { KlLossOptions } from './losses/kl-loss.js';
export { klLoss } from './losses/kl-loss.js';
export type { KtoOptions } from './losses/kto.js';
export { kto } from './losses/kto.js';
export type { ReferencedDatum, WeightedDatum } from './losses/loss-datum.js';
export { completionLogprob, tokenCount } from './losses/loss-datum.js';
export type { JudgedCompletion, KtoDatum, PreferencePair } from './losses/preference-data.js';
export { ktoData, preferenceData } from './losses/preference-data.js';
export type { WithReference } from './losses/reference.js';
export { withReference } from './losses/reference.js';
export type { OrpoOptions, SimpoOptions } from './losses/reference-free.js';
export { orpo, simpo } from './losses/reference-free.js';
export { expectedDeadShare } from './preflight/dead-groups.js';
export type { MemoryModel, PriceModel, RunSize } from './preflight/forecast.js';
export { shareOfForm, worthOfForm } from './preflight/format-gap.js';
export type { FormatGapOptions } from './preflight/measure-form.js';
export type { PreflightOptions } from './preflight/preflight.js';
export { preflight, usefulRates } from './preflight/preflight.js';
export type {
  Forecast,
  FormatGapForecast,
  FormComparison,
  FormRate,
  MeasuredFormatGap,
  MeasuredSteps,
  Preflight,
  PreflightReport,
  PromptRate,
  RunForecast,
} from './preflight/words.js';
export type { Random } from './random.js';
export { createRandom, mixSeed } from './random.js';
export type { RecordedDatumsOptions } from './recording/recorded-datums.js';
export { recordedDatums, recordedSequences } from './recording/recorded-datums.js';
export type { Fetch, RecordedTurn } from './recording/turn-recorder.js';
export { TurnRecorder } from './recording/turn-recorder.js';
export { accuracyText } from './reporting/accuracy-text.js';
export type { Phase } from './reporting/step-text.js';
export { phaseSeconds, stepLine } from './reporting/step-text.js';
export { equalValues } from './sandbox/equal-values.js';
export type {
  CallResult,
  ProgramError,
  Sandbox,
  SandboxCall,
  SandboxOutput,
  SandboxProgram,
  SandboxResult,
  TestedProgram,
  TestedResult,
  TestingSandbox,
  TestResult,
} from './sandbox/sandbox.js';
export type { SandboxFusionOptions } from './sandbox/sandbox-fusion.js';
export { sandboxFusion } from './sandbox/sandbox-fusion.js';
export type { SandboxValue } from './sandbox/values.js';
export type { Accuracy } from './statistics/accuracy.js';
export { accuracyOf } from './statistics/accuracy.js';
export { centerRewards, deadGroups, leaveOneOutRewards, normalizeRewards } from './statistics/advantages.js';
export type { GaeOptions, GaeResult } from './statistics/gae.js';
export { generalizedAdvantages } from './statistics/gae.js';
export type { Interval } from './statistics/intervals.js';
export { wilsonInterval } from './statistics/intervals.js';
export type { KlEstimator } from './statistics/kl.js';
export { klEstimate, klK1, klK2, klK3 } from './statistics/kl.js';
export type { LengthNormalization } from './statistics/lengths.js';
export { normalizeByLength, overlongPenalty } from './statistics/lengths.js';
export type { PairedComparison, PairedOutcome } from './statistics/paired.js';
export { comparePairs } from './statistics/paired.js';
export type { TurnAdvantagesOptions } from './statistics/turn-credit.js';
export { returnsToGo, turnAdvantages } from './statistics/turn-credit.js';
export { defineTask } from './tasks/define-task.js';
export type { ReadProblemsOptions } from './tasks/read-problems.js';
export { readProblems } from './tasks/read-problems.js';
export type { ResolvedSettings } from './tasks/settings.js';
export { defaultTaskModel, resolveSettings } from './tasks/settings.js';
export type { LabelledCompletion, LabelledTurn, ProblemSource, Task, TaskSettings } from './tasks/task.js';
export { isAnswerEnvironment } from './tasks/task.js';
export type { CheckpointOptions, Checkpoints, LoopPosition } from './training/checkpoints.js';
export type { Sampler, Scorer, Trainer } from './training/clients.js';
export type { Credit } from './training/episode-credit.js';
export type { EvaluateOptions, Evaluation } from './training/evaluate.js';
export { evaluate, validationMetrics } from './training/evaluate.js';
export type { EpisodeEvaluation, EvaluateEpisodesOptions } from './training/evaluate-episodes.js';
export { evaluateEpisodes } from './training/evaluate-episodes.js';
export type { FixedSamples, FixedSamplesOptions } from './training/fixed-samples.js';
export { runGrpo } from './training/grpo.js';
export type { Metrics } from './training/grpo-metrics.js';
export type {
  CommonGrpoOptions,
  EpisodeGrpoOptions,
  EpisodeGrpoStep,
  GroupOrigin,
  GrpoOptions,
  GrpoReference,
  GrpoResult,
  GrpoStep,
  LoopNotice,
  StalePolicy,
} from './training/grpo-options.js';
export type { ResumableStepsOptions } from './training/resumable-steps.js';
export { resumableSteps } from './training/resumable-steps.js';
export type { OnGraderError, Rollout, RolloutGroup } from './training/rollouts.js';
export type { SftOptions, SftResult, SftSampler, SftStep } from './training/sft.js';
export { runSft } from './training/sft.js';
export type { ShuffledBatchesOptions } from './training/shuffled-batches.js';
export { shuffledBatches } from './training/shuffled-batches.js';
export type { Validation, ValidationOptions, ValidationSchedule, ValidationStep } from './training/validation.js';
