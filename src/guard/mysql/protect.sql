-- Tables of MariaDB that refuse what was not advanced, whoever writes, also by hand. Apply it behind fencing.sql of the same
-- package, likewise as often as you like, by the same account.
--
--   call fencing_protect('stock', 'orders/eu');
--
-- FT002 is a write without advance in its transaction; the other codes are those of fencing.sql.

set @fencing_mode = @@session.sql_mode;
-- The procedures keep it, whatever the mode of their callers.
set session sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION,ERROR_FOR_DIVISION_BY_ZERO';

delimiter //

drop procedure if exists fencing_install //
create procedure fencing_install()
begin
  declare v_version int;
  -- Without fencing.sql there is no such table.
  declare continue handler for sqlstate '42S02' set v_version = null;
  set v_version = (select max(s.version) from fencing_settings s);
  if not v_version <=> 1 then
    signal sqlstate '45000' set message_text = 'this file needs version 1 of fencing: apply fencing.sql of the same package first';
  end if;
end //
call fencing_install() //
drop procedure fencing_install //

-- Called by the triggers of protected tables, for each row. It compares by itself, under a lock that stays until the transaction
-- ends, so what a variable says can never let a stale token pass. That a variable is of this transaction is asked once for each
-- statement, because asking takes long: now() stands still within one.
create or replace procedure fencing_judge(p_relation varchar(192) character set utf8mb4, p_domain varchar(255) character set utf8mb4)
begin
  declare v_token, v_highest bigint;
  declare v_ends varchar(64);
  declare v_message text character set utf8mb4;
  declare v_claimed boolean default @fencing_claimed_in <=> 'fencing_enter' or @fencing_judged <=> concat(now(6));
  if not v_claimed then
    call fencing_count_ends(v_ends);
    set v_claimed = @fencing_claimed_in <=> v_ends;
  end if;
  if v_claimed then
    set v_token = cast(json_unquote(json_extract(@fencing_claims, concat('$."', p_domain, '"'))) as signed);
  end if;
  if v_token is null then
    set v_message = left(concat('protected: call fencing_advance first in this transaction, for a write to ', p_relation), 128);
    signal sqlstate 'FT002' set message_text = v_message;
  end if;
  select f.token into v_highest from fencing_fence f where f.domain = p_domain lock in share mode;
  if not v_highest <=> v_token then
    set v_message = left(concat('stale: token ', v_token, ', and the fence is at ', coalesce(v_highest, 0), ', of ', p_domain), 128);
    signal sqlstate 'FT001' set message_text = v_message;
  end if;
  set @fencing_judged = concat(now(6));
end //

-- Takes the protection off. By an account with the right TRIGGER on the table; commits, as whatever defines something.
create or replace procedure fencing_unprotect(p_table varchar(64) character set utf8mb4)
sql security invoker
begin
  declare v_name varchar(64) default concat('fencing_', md5(p_table), '_');
  execute immediate concat('drop trigger if exists `', v_name, 'insert`');
  execute immediate concat('drop trigger if exists `', v_name, 'update`');
  execute immediate concat('drop trigger if exists `', v_name, 'delete`');
end //

-- After the row, so that it sees what other triggers made of it. `p_old` and `p_new`: the domain before and after, as SQL.
create or replace procedure fencing_make_triggers(
  p_table varchar(64) character set utf8mb4, p_old text character set utf8mb4, p_new text character set utf8mb4
)
sql security invoker
begin
  declare v_name varchar(64) default concat('fencing_', md5(p_table), '_');
  declare v_rest text character set utf8mb4 default
    concat(' on `', replace(p_table, '`', '``'), '` for each row begin ');
  declare v_judge text character set utf8mb4 default concat('call fencing_judge(', quote(p_table), ', ');
  execute immediate
    concat('create or replace trigger `', v_name, 'insert` after insert', v_rest, v_judge, p_new, '); end');
  execute immediate
    concat('create or replace trigger `', v_name, 'update` after update', v_rest, v_judge, p_old, '); ', v_judge, p_new, '); end');
  execute immediate
    concat('create or replace trigger `', v_name, 'delete` after delete', v_rest, v_judge, p_old, '); end');
end //

-- From now on every insert, update and delete of a row of this table (of this database) needs the domain advanced in the same
-- transaction. TRUNCATE, the cascades of foreign keys, and statements that define something fire no trigger: they pass. Takes the
-- same rights as fencing_unprotect; whoever calls it needs the right to call fencing_judge for good.
create or replace procedure fencing_protect(
  p_table varchar(64) character set utf8mb4, p_domain varchar(255) character set utf8mb4
)
sql security invoker
begin
  if p_domain is null or p_domain not regexp '^[A-Za-z0-9._~:@+=/#-]+$' then
    signal sqlstate '22023' set message_text = 'fencing_protect: the domain must be one of Fencepost';
  end if;
  call fencing_make_triggers(p_table, quote(p_domain), quote(p_domain));
end //

-- As fencing_protect, of the domain that this column of each row has; an update needs the one before and the one after.
create or replace procedure fencing_protect_by_column(
  p_table varchar(64) character set utf8mb4, p_column varchar(64) character set utf8mb4
)
sql security invoker
begin
  declare v_column text character set utf8mb4 default concat('`', replace(p_column, '`', '``'), '`');
  call fencing_make_triggers(p_table, concat('old.', v_column), concat('new.', v_column));
end //

-- What is protected, each with the statement of its trigger.
create or replace view fencing_protected as
  select t.event_object_table as relation, t.event_manipulation as operation, t.action_statement as judged_by
  from information_schema.triggers t where t.trigger_schema = database() and t.trigger_name like 'fencing\_%' //

delimiter ;

set session sql_mode = @fencing_mode;
