-- Archive files that hold what rows have shed. Their ranges follow one another without a gap, from the beginning of the
-- log.
CREATE TABLE jurat.archives (
	first  bigint PRIMARY KEY CHECK (first >= 0),                     -- index of the first row
	past   bigint  NOT NULL CHECK (past > first),                     -- index after the last row
	file   text    NOT NULL CHECK (file <> ''),
	digest bytea   NOT NULL UNIQUE CHECK (octet_length(digest) = 32),
	shed   boolean NOT NULL                                           -- the rows have shed
);
CREATE FUNCTION jurat.archives_follow() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF TG_OP = 'INSERT' AND NEW.first = (SELECT coalesce(max(past), 0) FROM jurat.archives)
		OR TG_OP = 'UPDATE' AND NEW.first = OLD.first AND NEW.past = OLD.past THEN
		RETURN NEW;
	END IF;
	RAISE EXCEPTION 'archives follow one another' USING ERRCODE = 'restrict_violation';
END $$;
CREATE TRIGGER archives_stay BEFORE DELETE OR TRUNCATE ON jurat.archives FOR EACH STATEMENT EXECUTE FUNCTION jurat.refuse();
CREATE TRIGGER archives_follow BEFORE INSERT OR UPDATE ON jurat.archives FOR EACH ROW EXECUTE FUNCTION jurat.archives_follow();

-- A row in an archived range may lose the parts that the archive holds. Every other change to it is refused.
CREATE FUNCTION jurat.only_shed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF NOT EXISTS (SELECT 1 FROM jurat.archives WHERE first <= OLD.idx AND OLD.idx < past) THEN
		RAISE EXCEPTION 'the log is append-only' USING ERRCODE = 'restrict_violation';
	END IF;
	IF TG_OP = 'DELETE' THEN
		RETURN OLD;
	END IF;
	OLD.payload := ''; OLD.signatures := '{}'; OLD.kinds := '{}'; OLD.tokens := '{}';
	IF NEW IS DISTINCT FROM OLD OR EXISTS (SELECT 1 FROM jurat.waiting WHERE idx = OLD.idx) THEN
		RAISE EXCEPTION 'the log is append-only' USING ERRCODE = 'restrict_violation';
	END IF;
	RETURN NEW;
END $$;
DROP TRIGGER records_stay ON jurat.records;
CREATE TRIGGER records_stay BEFORE DELETE OR TRUNCATE ON jurat.records FOR EACH STATEMENT EXECUTE FUNCTION jurat.refuse();
CREATE TRIGGER records_keep BEFORE UPDATE ON jurat.records FOR EACH ROW EXECUTE FUNCTION jurat.only_shed();
DROP TRIGGER timestamps_stay ON jurat.timestamps;
CREATE TRIGGER timestamps_stay BEFORE UPDATE OR TRUNCATE ON jurat.timestamps FOR EACH STATEMENT EXECUTE FUNCTION jurat.refuse();
CREATE TRIGGER timestamps_keep BEFORE DELETE ON jurat.timestamps FOR EACH ROW EXECUTE FUNCTION jurat.only_shed();
