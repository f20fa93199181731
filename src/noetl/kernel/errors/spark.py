"""What can be wrong with Spark: something is missing, its driver is gone, a job ended badly."""

from noetl.kernel.errors.root import NoETLError


class SparkError(NoETLError):
    code = "spark"


class JavaMissing(SparkError):
    code = "java_missing"

    def __init__(self, found: str) -> None:
        advice = (
            "install OpenJDK 17 or newer (apt install openjdk-17-jre-headless),"
            " or pip install 'noetl[java]'"
        )
        super().__init__(f"Spark needs Java 17 or newer: {found}; {advice}")
        self.found = found


class SparkMissing(SparkError):
    code = "spark_missing"

    def __init__(self) -> None:
        super().__init__("Spark is not installed; pip install 'noetl[spark]'")


class SparkStartFailed(SparkError):
    code = "spark_start_failed"
    retryable = True

    def __init__(self, reason: str, log_tail: str = "") -> None:
        super().__init__(f"Spark did not start: {reason}\n{log_tail}".rstrip())
        self.reason = reason
        self.log_tail = log_tail


class SparkDriverLost(SparkError):
    code = "spark_driver_lost"
    retryable = True

    def __init__(self, reason: str) -> None:
        super().__init__(f"the process that drives Spark {reason}; the next job starts another")


class SparkJobFailed(SparkError):
    code = "spark_job_failed"
    retryable = True

    def __init__(self, tag: str, reason: str, exception: str = "") -> None:
        super().__init__(f"Spark job {tag} failed: {reason}")
        self.tag = tag
        self.reason = reason
        self.exception = exception  # the name of what was raised, where that is known


class SparkJobCancelled(SparkError):
    code = "spark_job_cancelled"

    def __init__(self, tag: str) -> None:
        super().__init__(f"Spark job {tag} was cancelled")
        self.tag = tag
