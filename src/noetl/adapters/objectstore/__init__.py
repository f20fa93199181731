"""S3, GCS and Azure through one library."""
